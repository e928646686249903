/// The steps at which a test can look, interfere, or make Tarn fail.
package enum FolderStep: String, Sendable, CaseIterable {
  case reserve
  case write
  /// The kernel is asked to begin with writing back.
  case startWriteback
  case syncData
  case syncFileSystem
  case checkWriteback
  case syncFile
  case makeDirectory
  /// One that is empty now.
  case removeDirectory
  /// Into the final name, where nothing stands.
  case rename
  /// Into the trash, under the name that what it will displace is to have there.
  case stage
  /// With what stands at the final name.
  case exchange
  case moveToTrash
  /// Back to where it was, after a step that failed or met another object than expected.
  case moveBack
  case syncDirectory
  /// Of the folder, once its file is open.
  case lock
}

/// Called before each step, on the thread that takes it.
///
/// Returns 0 to go on, or the errno that the step is to fail with.
package typealias FolderProbe = @Sendable (FolderStep) -> Int32

/// Takes a step: the probe's word first, then the system call.
///
/// - Returns: 0 or more, or a negative errno.
func probed(_ step: FolderStep, _ probe: FolderProbe?, _ call: () -> Int32) -> Int32 {
  if let probe {
    let errno = probe(step)
    if errno != 0 { return -errno }
  }
  return call()
}
