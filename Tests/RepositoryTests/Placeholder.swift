import Testing
@Suite struct RepositoryPlaceholder {}
