"""Small archives and lakes, and ways to run syncs over them."""
