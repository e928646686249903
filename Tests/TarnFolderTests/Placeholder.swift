import Testing

@Suite struct FolderPlaceholder {}
