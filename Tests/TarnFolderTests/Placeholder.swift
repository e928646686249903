import Testing
@Suite struct TarnFolderPlaceholder {}
