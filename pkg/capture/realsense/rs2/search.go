package rs2

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// environment is the variable with the path of the library.
const environment = "VOLSFU_REALSENSE_LIBRARY"

// candidates returns the files to try, and whether the user named them.
func candidates(path string) (files []string, named bool) {
	if path == "" {
		path = os.Getenv(environment)
	}
	if path != "" {
		return []string{path}, true
	}
	switch runtime.GOOS {
	case "windows":
		files = []string{"realsense2.dll"} // beside the program, or on the PATH
		for _, root := range []string{os.Getenv("ProgramFiles"), os.Getenv("ProgramFiles(x86)")} {
			if root != "" {
				files = append(
					files,
					installed(filepath.Join(root, "*RealSense SDK 2.0", "bin", "x64", "realsense2.dll"))...)
			}
		}
		return files, false
	case "darwin":
		return []string{
			"librealsense2.dylib",
			"/opt/homebrew/lib/librealsense2.dylib",
			"/usr/local/lib/librealsense2.dylib",
		}, false
	}
	// Debian's runtime packages have no librealsense2.so, only the name with major and minor
	// version. For names without a folder, the loader searches LD_LIBRARY_PATH and the directories
	// of ldconfig.
	files = []string{"librealsense2.so", "librealsense2.so.2"}
	for _, folder := range []string{"/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib",
		"/opt/ros/*/lib/*-linux-gnu", "/opt/ros/*/lib"} {
		files = append(files, installed(filepath.Join(folder, "librealsense2.so*"))...)
	}
	return files, false
}

// installed returns the files that match a pattern, the newest version first.
func installed(pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil { // the name of a folder has an unmatched bracket
		return nil
	}
	slices.SortFunc(
		files,
		func(a, b string) int { return slices.CompareFunc(numbers(b), numbers(a), cmp.Compare[int]) },
	)
	return files
}

// numbers returns the parts of the version at the end of a file name: 2.58.1 follows 2.9.
func numbers(file string) []int {
	_, version, _ := strings.Cut(filepath.Base(file), ".so.")
	var parts []int
	for part := range strings.SplitSeq(version, ".") {
		if n, err := strconv.Atoi(part); err == nil {
			parts = append(parts, n)
		}
	}
	return parts
}
