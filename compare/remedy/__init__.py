"""`python -m compare.remedy`: which changes remove the bytes that the plan does not need, and which save time."""
