enum TarnFolderModule {}
