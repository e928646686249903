/// The steps at which a test can look, interfere, or let Tarn fail.
package enum FolderStep: String, Sendable, CaseIterable {
  case reserve
  case write
  /// Ask the kernel to begin writing back.
  case startWriteback
  case syncData
  case syncFileSystem
  case checkWriteback
  case syncFile
  case makeDirectory
  /// Remove an empty directory.
  case removeDirectory
  /// Move into the final name, where nothing stands.
  case rename
  /// Move into the trash, under the name that the displaced object is to have there.
  case stage
  /// Exchange with what stands at the final name.
  case exchange
  case moveToTrash
  /// Move back after a step that failed, or that met an unexpected object.
  case moveBack
  case syncDirectory
  /// Lock the folder, once the lock file is open.
  case lock
}

/// A function called before each step, on the thread that takes it.
///
/// Returns 0 to continue, or the errno that the step is to fail with.
package typealias FolderProbe = @Sendable (FolderStep) -> Int32

/// Takes a step: asks the probe first, then makes the system call.
///
/// - Returns: 0 or more, or a negative errno.
func probed(_ step: FolderStep, _ probe: FolderProbe?, _ call: () -> Int32) -> Int32 {
  if let probe {
    let errno = probe(step)
    if errno != 0 { return -errno }
  }
  return call()
}
