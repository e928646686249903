enum TarnLedgerModule {}
