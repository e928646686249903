// The harness follows.
