"""Episodes for people to look at."""
