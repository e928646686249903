enum TarnFeedsModule {}
