enum TarnRuntimeModule {}
