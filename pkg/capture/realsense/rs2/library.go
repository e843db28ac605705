// Package rs2 calls librealsense2 through its C API. The package opens the library at run time: a program with this
// package starts without the library. The error when opening a camera explains how to install it.
//
// Every handle (Context, Device, Sensor, Queue, Block, Frame) is an object of the library that must
// be closed. A handle must be used by one goroutine at a time. Different goroutines may use
// different handles of one library at once, as the library allows. The library fills queues on its
// own threads, which never enter Go.
package rs2

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/volsfu/volsfu/pkg/foreign"
)

// These are the errors of loading and calling, wrapped with the file or function and the cause.
var (
	// ErrUnavailable reports that there is no library to load, and how to install one.
	ErrUnavailable = errors.New("librealsense2 is not available")
	// ErrVersion reports that the library's version is not supported.
	ErrVersion = errors.New("the version of librealsense2 is not supported")
	// ErrCall reports an error of the library, with the library's own text.
	ErrCall = errors.New("librealsense2")
)

// Version is a version of the library, as three numbers.
type Version struct{ Major, Minor, Patch int }

// String returns the version in dotted notation.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// versionOf decodes the library's notation of versions, 10000·major + 100·minor + patch.
func versionOf(number int32) Version {
	return Version{int(number / 10000), int(number / 100 % 100), int(number % 100)}
}

// Library is the loaded librealsense2. The library is never unloaded, because threads of the
// library may outlive the last handle.
type Library struct {
	handle  uintptr
	path    string
	version Version
	api     int32 // the version as a number
	symbols symbols
}

// Path returns the loaded file.
func (l *Library) Path() string { return l.path }

// Version returns the version reported by the library.
func (l *Library) Version() Version { return l.version }

// Load opens the library at a path. If the path is empty, it uses VOLSFU_REALSENSE_LIBRARY or
// searches the system's library directories, newest version first. Errors wrap ErrUnavailable (none
// found, or none that can be opened) or ErrVersion.
func Load(path string) (*Library, error) {
	if !foreign.Supported {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, foreign.Unsupported)
	}
	files, named := candidates(path)
	var refused []string
	for _, file := range files {
		handle, err := foreign.Open(file)
		if err == nil {
			return attach(file, handle)
		}
		refused = append(refused, err.Error())
	}
	if named {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(refused, "; "))
	}
	return nil, fmt.Errorf(
		"%w: %s; or name its file in %s (looked for %s)",
		ErrUnavailable,
		advice(),
		environment,
		strings.Join(files, ", "),
	)
}

// advice returns instructions for installing the library.
func advice() string {
	switch runtime.GOOS {
	case "windows":
		return "install the RealSense SDK 2.0"
	case "darwin":
		return "install it with: brew install librealsense"
	}
	return "install the package librealsense2 of RealSense's Debian repository"
}

// attach resolves the functions of an opened library and checks the expected meaning of constants.
func attach(path string, handle uintptr) (*Library, error) {
	l := &Library{handle: handle, path: path}
	if missing := l.symbols.find(handle); len(missing) > 0 {
		if l.symbols.GetAPIVersion == nil {
			return nil, fmt.Errorf("%w: %s has no version because it lacks rs2_get_api_version", ErrVersion, path)
		}
		number, err := l.apiVersion()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf(
			"%w: %s is %v and lacks %s; expected %s",
			ErrVersion,
			path,
			versionOf(number),
			strings.Join(missing, ", "),
			expected,
		)
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

// expected describes the versions with every function in symbols. The newest of these functions is
// rs2_try_wait_for_frame.
const expected = "2.16 or a newer 2.x"

func (l *Library) apiVersion() (int32, error) {
	var failed uintptr
	number := l.symbols.GetAPIVersion(&failed)
	return number, l.failure(failed)
}

// failure converts the library's error object to an error, nil for none, and frees it.
func (l *Library) failure(object uintptr) error {
	if object == 0 {
		return nil
	}
	defer l.symbols.FreeError(object)
	return fmt.Errorf("%w: %s: %s", ErrCall, l.symbols.GetFailedFunction(object), l.symbols.GetErrorMessage(object))
}
