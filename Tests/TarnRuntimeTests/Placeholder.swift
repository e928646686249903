import Testing
@Suite struct TarnRuntimePlaceholder {}
