enum TarnEngineModule {}
