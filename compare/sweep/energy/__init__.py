"""`compare.sweep --energy`: modelled joules, watts and kernel times of every case, side by side."""
