import Testing

@Suite struct TarnEnginePlaceholder {}
