enum TarnTransferModule {}
