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

// environment is the variable that names the library's file.
const environment = "VOLSFU_REALSENSE_LIBRARY"

// candidates lists the files to try, and whether the user named them.
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
				files = append(files, installed(filepath.Join(root, "*RealSense SDK 2.0", "bin", "x64", "realsense2.dll"))...)
			}
		}
		return files, false
	case "darwin":
		return []string{"librealsense2.dylib", "/opt/homebrew/lib/librealsense2.dylib", "/usr/local/lib/librealsense2.dylib"}, false
	}
	// Debian's packages for running programs have no librealsense2.so, only the name with major and minor version. The loader looks for
	// names without a folder in LD_LIBRARY_PATH and in what ldconfig knows.
	files = []string{"librealsense2.so", "librealsense2.so.2"}
	for _, folder := range []string{"/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/opt/ros/*/lib/*-linux-gnu", "/opt/ros/*/lib"} {
		files = append(files, installed(filepath.Join(folder, "librealsense2.so*"))...)
	}
	return files, false
}

// installed lists the files of a pattern, the newest version first.
func installed(pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil { // a folder with an unmatched bracket in its name
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return slices.CompareFunc(numbers(b), numbers(a), cmp.Compare[int]) })
	return files
}

// numbers are the parts of a version at the end of a file's name: 2.58.1 sorts behind 2.9.
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
