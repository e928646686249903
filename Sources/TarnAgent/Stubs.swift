package import TarnCore
package import TarnEngine

private let missing = PassFailure(.defect, code: "stub", "not written yet")

extension Tarn {
  package func sync(
    _ request: SyncRequest, observer: any PassObserver, progress: PassProgress, stop: StopFlag
  ) throws(PassFailure) -> PassReport { throw missing }
  package func plan(
    _ request: SyncRequest, observer: any PassObserver, progress: PassProgress, stop: StopFlag,
    each: (Action) -> Void
  ) throws(PassFailure) -> PassReport { throw missing }
  package func status(folder: String, state: String?, problemLimit: Int) throws(PassFailure) -> StatusDocument
  {
    throw missing
  }
  package func explain(folder: String, state: String?, path: String) throws(PassFailure) -> Explanation {
    throw missing
  }
  package func verify(
    folder: String, state: String?, marking: Bool, observer: any PassObserver, progress: PassProgress,
    stop: StopFlag
  ) throws(PassFailure) -> VerifyReport { throw missing }
  package func approve(
    folder: String, state: String?, plan: String?, observer: any PassObserver
  ) throws(PassFailure) -> ApprovalReport { throw missing }
  package func heldPaths(
    folder: String, state: String?
  ) throws(PassFailure) -> (plan: HeldPlan, paths: [RelativePath])? { throw missing }
  package func trash(folder: String, state: String?) throws(PassFailure) -> [TrashRow] { throw missing }
  package func restoreTrash(
    folder: String, state: String?, name: String, to path: String?
  ) throws(PassFailure) -> TrashRow { throw missing }
  package func emptyTrash(
    folder: String, state: String?, names: [String]
  ) throws(PassFailure) -> (files: Int, bytes: UInt64) { throw missing }
  package func forget(folder: String, state: String?) throws(PassFailure) { throw missing }
  package func isFeed(_ text: String) -> Bool { text.contains("://") || text == "-" }
  package func knownFolders() -> [String] { [] }
  package func mirrorFolder(containing directory: String) -> String? { nil }
}
