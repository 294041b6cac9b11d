"""Which of several events with one message id is kept, and the index that remembers them."""
