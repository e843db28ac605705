// Package rs2 speaks to librealsense2 through its C API. The library is opened at run time: a program with this package in it starts
// without the library, and says what to install when it is asked for a camera.
//
// Every handle (Context, Device, Sensor, Queue, Block, Frame) stands for an object of the library that somebody must close. A handle belongs
// to one goroutine at a time; handles of one library may be used by different goroutines at once, as the library allows. The library fills
// queues on threads of its own, which never enter Go.
package rs2

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Errors of loading and calling. They are wrapped with the file or function and what was wrong.
var (
	// ErrUnavailable says that there is no library to load, and how to get one.
	ErrUnavailable = errors.New("librealsense2 is not available")
	// ErrVersion says that there is one that this package cannot speak to.
	ErrVersion = errors.New("librealsense2 is of a version that cannot be used")
	// ErrCall says that the library refused, in the library's own words.
	ErrCall = errors.New("librealsense2")
)

// Version is a version of the library, as three numbers.
type Version struct{ Major, Minor, Patch int }

// String writes the version as people do.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// versionOf reads the library's own way of writing versions, 10000·major + 100·minor + patch.
func versionOf(number int32) Version {
	return Version{int(number / 10000), int(number / 100 % 100), int(number % 100)}
}

// Library is librealsense2, loaded. It is never unloaded: its threads may outlive the last handle.
type Library struct {
	handle  uintptr
	path    string
	version Version
	api     int32 // the version as a number
	symbols symbols
}

// Path is the file that was loaded.
func (l *Library) Path() string { return l.path }

// Version is what the library says that it is.
func (l *Library) Version() Version { return l.version }

// Load opens the library at a path or, where the path is empty, the one in VOLSFU_REALSENSE_LIBRARY, or where the system keeps its libraries, newest
// first. Errors are around ErrUnavailable (none found, or none that can be opened) or ErrVersion.
func Load(path string) (*Library, error) {
	if !Supported {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, unsupported)
	}
	files, named := candidates(path)
	var refused []string
	for _, file := range files {
		handle, err := openLibrary(file)
		if err == nil {
			return attach(file, handle)
		}
		refused = append(refused, err.Error())
	}
	if named {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(refused, "; "))
	}
	return nil, fmt.Errorf("%w: %s; or name its file in %s (looked for %s)", ErrUnavailable, advice(), environment, strings.Join(files, ", "))
}

// advice says how people come by the library.
func advice() string {
	switch runtime.GOOS {
	case "windows":
		return "install the RealSense SDK 2.0"
	case "darwin":
		return "install it with: brew install librealsense"
	}
	return "install the package librealsense2 of RealSense's Debian repository"
}

// attach finds the functions of an opened library and checks that they mean what this package takes them for.
func attach(path string, handle uintptr) (*Library, error) {
	l := &Library{handle: handle, path: path}
	if missing := l.symbols.find(handle); len(missing) > 0 {
		if l.symbols.GetAPIVersion == nil {
			return nil, fmt.Errorf("%w: %s does not tell one, it lacks rs2_get_api_version", ErrVersion, path)
		}
		number, err := l.apiVersion()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s is %v and lacks %s; expected %s", ErrVersion, path, versionOf(number), strings.Join(missing, ", "), expected)
	}
	number, err := l.apiVersion()
	if err != nil {
		return nil, err
	}
	l.api, l.version = number, versionOf(number)
	if l.version.Major != 2 {
		return nil, fmt.Errorf("%w: %s is %v, expected %s", ErrVersion, path, l.version, expected)
	}
	if err := l.checkNames(); err != nil {
		return nil, err
	}
	return l, nil
}

// expected names the versions that have every function in symbols. Of these, rs2_try_wait_for_frame is the youngest.
const expected = "2.16 or a newer 2.x"

func (l *Library) apiVersion() (int32, error) {
	var failed uintptr
	number := l.symbols.GetAPIVersion(&failed)
	return number, l.failure(failed)
}

// failure turns the library's error object into an error, nil for none, and frees it.
func (l *Library) failure(object uintptr) error {
	if object == 0 {
		return nil
	}
	defer l.symbols.FreeError(object)
	return fmt.Errorf("%w: %s: %s", ErrCall, l.symbols.GetFailedFunction(object), l.symbols.GetErrorMessage(object))
}
