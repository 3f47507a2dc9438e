"""The environment contract as checks that run against any environment, yours too.

Each check takes a factory: a picklable callable that makes a fresh environment and accepts `render_mode`.
In a pytest module:

    import functools, gymnasium, pytest
    from mm_gym.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_environment_keeps_the_contract(check):
        check(functools.partial(gymnasium.make, "my_package:my/Env-v0"))

or all at once: `check_environment(make)`. A failure is an AssertionError that says what was expected. The
checks of vector environments fork and spawn processes; `it_records_a_video` needs `moviepy`, the checks of
processes and growth need `psutil` (both in the extra `test`).

Knows Gymnasium and the contract of `mm_gym.env`. Does not know any environment.
"""

from __future__ import annotations

from collections.abc import Callable

from mm_gym.testing import contract, gymnasium_checks
from mm_gym.testing.common import MALFORMED, Make
from mm_gym.testing.gymnasium_checks import many_resets_do_not_grow

__all__ = ["CHECKS", "MALFORMED", "VECTOR_CHECKS", "Make", "check_environment", "many_resets_do_not_grow"]

VECTOR_CHECKS: tuple[Callable[..., None], ...] = (
    gymnasium_checks.sync_vector_environments_work,
    gymnasium_checks.async_vector_environments_work_forked,
    gymnasium_checks.async_vector_environments_work_spawned,
)
"""The checks of vector environments; two of them start processes."""

CHECKS: tuple[Callable[..., None], ...] = (
    contract.spaces_contain_what_is_returned,
    contract.infos_keep_the_contract,
    contract.same_seed_gives_the_same_episode,
    contract.text_holds_scalar_values,
    contract.malformed_actions_never_raise,
    contract.malformed_actions_reach_an_end,
    contract.a_step_outside_an_episode_raises_reset_needed,
    contract.an_action_that_is_no_text_is_the_callers_mistake,
    contract.the_engines_turn_cap_is_an_option,
    contract.finish_ends_the_episode_once,
    contract.the_expert_solves_it,
    contract.it_closes_twice,
    gymnasium_checks.gymnasiums_check_env_passes,
    gymnasium_checks.the_constructor_starts_nothing,
    gymnasium_checks.a_fresh_environment_pickles,
    gymnasium_checks.rendering_has_one_size,
    gymnasium_checks.it_records_a_video,
    *VECTOR_CHECKS,
    many_resets_do_not_grow,
)
"""All checks; each takes a factory."""


def check_environment(make: Make, *, vector: bool = True, resets: int = 50) -> None:
    """Run all checks on environments from `make`.

    Args:
        make: A picklable factory that accepts `render_mode`.
        vector: Whether to run the checks that fork and spawn processes.
        resets: Episodes of the check for growth.

    Raises:
        AssertionError: A point of the contract does not hold; the text says which.
    """
    for check in CHECKS:
        if check is many_resets_do_not_grow:
            check(make, resets)
        elif vector or check not in VECTOR_CHECKS:
            check(make)
