"""What a user could pick instead, each written as well as its fans would."""
