enum TarnAgentModule {}
