package rs2

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/foreign"
)

// symbols are the functions of the C API, named by their tags. Handles are addresses. Functions
// that are called for every frame are addresses for Library.call, which does not allocate; the
// others are Go functions.
type symbols struct {
	GetAPIVersion      func(failed *uintptr) int32                              `c:"rs2_get_api_version"`
	GetErrorMessage    func(object uintptr) string                              `c:"rs2_get_error_message"`
	GetFailedFunction  func(object uintptr) string                              `c:"rs2_get_failed_function"`
	FreeError          func(object uintptr)                                     `c:"rs2_free_error"`
	StreamName         func(value int32) string                                 `c:"rs2_stream_to_string"`
	FormatName         func(value int32) string                                 `c:"rs2_format_to_string"`
	OptionName         func(value int32) string                                 `c:"rs2_option_to_string"`
	InfoName           func(value int32) string                                 `c:"rs2_camera_info_to_string"`
	DomainName         func(value int32) string                                 `c:"rs2_timestamp_domain_to_string"`
	DistortionName     func(value int32) string                                 `c:"rs2_distortion_to_string"`
	StatusName         func(value int32) string                                 `c:"rs2_playback_status_to_string"`
	CreateContext      func(int32, *uintptr) uintptr                            `c:"rs2_create_context"`
	DeleteContext      func(context uintptr)                                    `c:"rs2_delete_context"`
	QueryDevices       func(uintptr, *uintptr) uintptr                          `c:"rs2_query_devices"`
	GetDeviceCount     func(list uintptr, failed *uintptr) int32                `c:"rs2_get_device_count"`
	CreateDevice       func(list uintptr, index int32, failed *uintptr) uintptr `c:"rs2_create_device"`
	DeleteDeviceList   func(list uintptr)                                       `c:"rs2_delete_device_list"`
	DeleteDevice       func(device uintptr)                                     `c:"rs2_delete_device"`
	SupportsDeviceInfo func(device uintptr, info int32, failed *uintptr) int32  `c:"rs2_supports_device_info"`
	GetDeviceInfo      func(device uintptr, info int32, failed *uintptr) string `c:"rs2_get_device_info"`

	QuerySensors     func(device uintptr, failed *uintptr) uintptr                         `c:"rs2_query_sensors"`
	GetSensorsCount  func(list uintptr, failed *uintptr) int32                             `c:"rs2_get_sensors_count"`
	CreateSensor     func(list uintptr, index int32, failed *uintptr) uintptr              `c:"rs2_create_sensor"`
	DeleteSensorList func(list uintptr)                                                    `c:"rs2_delete_sensor_list"`
	DeleteSensor     func(sensor uintptr)                                                  `c:"rs2_delete_sensor"`
	GetOption        func(options uintptr, option int32, failed *uintptr) float32          `c:"rs2_get_option"`
	OpenMultiple     func(sensor uintptr, profiles *uintptr, count int32, failed *uintptr) `c:"rs2_open_multiple"`
	CloseSensor      func(sensor uintptr, failed *uintptr)                                 `c:"rs2_close"`
	StartQueue       func(sensor, queue uintptr, failed *uintptr)                          `c:"rs2_start_queue"`
	StopSensor       func(sensor uintptr, failed *uintptr)                                 `c:"rs2_stop"`

	GetStreamProfiles func(sensor uintptr,
		failed *uintptr) uintptr `c:"rs2_get_stream_profiles"`
	GetStreamProfilesCount func(list uintptr,
		failed *uintptr) int32 `c:"rs2_get_stream_profiles_count"`
	GetStreamProfile func(list uintptr, index int32,
		failed *uintptr) uintptr `c:"rs2_get_stream_profile"`
	DeleteStreamProfilesList func(
		list uintptr) `c:"rs2_delete_stream_profiles_list"`
	GetVideoStreamResolution func(profile uintptr, width, height *int32,
		failed *uintptr) `c:"rs2_get_video_stream_resolution"`
	GetVideoStreamIntrinsics func(profile uintptr, intrinsics *Intrinsics,
		failed *uintptr) `c:"rs2_get_video_stream_intrinsics"`

	CreateFrameQueue func(capacity int32,
		failed *uintptr) uintptr `c:"rs2_create_frame_queue"`
	DeleteFrameQueue  func(queue uintptr)                         `c:"rs2_delete_frame_queue"`
	CreateSync        func(failed *uintptr) uintptr               `c:"rs2_create_sync_processing_block"`
	CreateAlign       func(stream int32, failed *uintptr) uintptr `c:"rs2_create_align"`
	CreateDecimation  func(failed *uintptr) uintptr               `c:"rs2_create_decimation_filter_block"`
	CreateSpatial     func(failed *uintptr) uintptr               `c:"rs2_create_spatial_filter_block"`
	CreateTemporal    func(failed *uintptr) uintptr               `c:"rs2_create_temporal_filter_block"`
	CreateHoleFilling func(failed *uintptr) uintptr               `c:"rs2_create_hole_filling_filter_block"`
	CreateDisparity   func(toDisparity uint8,
		failed *uintptr) uintptr `c:"rs2_create_disparity_transform_block"`
	CreatePointcloud     func(failed *uintptr) uintptr `c:"rs2_create_pointcloud"`
	StartProcessingQueue func(block, queue uintptr,
		failed *uintptr) `c:"rs2_start_processing_queue"`
	DeleteBlock func(block uintptr)                                                 `c:"rs2_delete_processing_block"`
	SetOption   func(options uintptr, option int32, value float32, failed *uintptr) `c:"rs2_set_option"`

	AddPlayback func(context uintptr, file string, failed *uintptr) uintptr `c:"rs2_context_add_device"`
	SetRealTime func(device uintptr, realTime int32,
		failed *uintptr) `c:"rs2_playback_device_set_real_time"`
	PausePlayback      func(device uintptr, failed *uintptr)                      `c:"rs2_playback_device_pause"`
	ResumePlayback     func(device uintptr, failed *uintptr)                      `c:"rs2_playback_device_resume"`
	CreateRecordDevice func(device uintptr, file string, failed *uintptr) uintptr `c:"rs2_create_record_device"`

	// A function with a floating-point result cannot be called by its address.
	GetTimestamp func(frame uintptr, failed *uintptr) float64 `c:"rs2_get_frame_timestamp"`

	TryWaitForFrame  uintptr `c:"rs2_try_wait_for_frame"`
	PollForFrame     uintptr `c:"rs2_poll_for_frame"`
	ProcessFrame     uintptr `c:"rs2_process_frame"`
	ReleaseFrame     uintptr `c:"rs2_release_frame"`
	EmbeddedFrames   uintptr `c:"rs2_embedded_frames_count"`
	ExtractFrame     uintptr `c:"rs2_extract_frame"`
	FrameProfile     uintptr `c:"rs2_get_frame_stream_profile"`
	ProfileData      uintptr `c:"rs2_get_stream_profile_data"`
	FrameData        uintptr `c:"rs2_get_frame_data"`
	FrameWidth       uintptr `c:"rs2_get_frame_width"`
	FrameHeight      uintptr `c:"rs2_get_frame_height"`
	FrameStride      uintptr `c:"rs2_get_frame_stride_in_bytes"`
	FrameNumber      uintptr `c:"rs2_get_frame_number"`
	FrameDomain      uintptr `c:"rs2_get_frame_timestamp_domain"`
	FramePointsCount uintptr `c:"rs2_get_frame_points_count"`
	PlaybackStatus   uintptr `c:"rs2_playback_device_get_current_status"`
	FrameVertices    uintptr `c:"rs2_get_frame_vertices"`
}

// find resolves every function and returns the names of missing ones.
func (s *symbols) find(library uintptr) (missing []string) {
	return find(reflect.ValueOf(s).Elem(), library)
}

func (s *softwareSymbols) find(library uintptr) (missing []string) {
	return find(reflect.ValueOf(s).Elem(), library)
}

func find(table reflect.Value, library uintptr) (missing []string) {
	for i := range table.NumField() {
		name, field := table.Type().Field(i).Tag.Get("c"), table.Field(i)
		address, ok := foreign.Symbol(library, name)
		switch {
		case !ok:
			missing = append(missing, name)
		case field.Kind() == reflect.Uintptr:
			field.Set(reflect.ValueOf(address))
		default:
			foreign.Bind(field.Addr().Interface(), address)
		}
	}
	return missing
}

// checkNames compares the names of the enumeration values used here with the library's names. So
// far, the enumerations have only grown at the end. If a later version changes that, cameras would
// receive wrong settings.
func (l *Library) checkNames() error {
	checks := []struct {
		name  func(int32) string
		value int32
		want  string
	}{
		{l.symbols.StreamName, int32(Depth), "Depth"},
		{l.symbols.StreamName, int32(Color), "Color"},
		{l.symbols.FormatName, int32(Z16), "Z16"},
		{l.symbols.FormatName, int32(RGB8), "RGB8"},
		{l.symbols.FormatName, int32(BGR8), "BGR8"},
		{l.symbols.FormatName, int32(RGBA8), "RGBA8"},
		{l.symbols.FormatName, int32(BGRA8), "BGRA8"},
		{l.symbols.OptionName, int32(depthUnits), "Depth Units"},
		{l.symbols.OptionName, int32(FilterMagnitude), "Filter Magnitude"},
		{l.symbols.OptionName, int32(FilterSmoothAlpha), "Filter Smooth Alpha"},
		{l.symbols.OptionName, int32(FilterSmoothDelta), "Filter Smooth Delta"},
		{l.symbols.OptionName, int32(HolesFill), "Holes Fill"},
		{l.symbols.InfoName, int32(Name), "Name"},
		{l.symbols.InfoName, int32(SerialNumber), "Serial Number"},
		{l.symbols.DomainName, int32(HardwareClock), "Hardware Clock"},
		{l.symbols.DomainName, int32(SystemTime), "System Time"},
		{l.symbols.DomainName, int32(GlobalTime), "Global Time"},
		{l.symbols.DistortionName, int32(NoDistortion), "None"},
		{l.symbols.DistortionName, int32(ModifiedBrownConrady), "Modified Brown Conrady"},
		{l.symbols.DistortionName, int32(InverseBrownConrady), "Inverse Brown Conrady"},
		{l.symbols.DistortionName, int32(FTheta), "Ftheta"},
		{l.symbols.DistortionName, int32(BrownConrady), "Brown Conrady"},
		{l.symbols.StatusName, int32(playbackStopped), "Stopped"},
	}
	for _, check := range checks {
		if got := check.name(check.value); !strings.EqualFold(got, check.want) {
			return fmt.Errorf(
				"%w: %s is %v and has %q where %q is expected",
				ErrVersion,
				l.path,
				l.version,
				got,
				check.want,
			)
		}
	}
	return nil
}

// invocation is the memory of one call. C must not receive addresses on a goroutine's stack, which
// can move.
type invocation struct {
	arguments [8]uintptr
	failed    uintptr
	out       [5]uintptr
}

var invocations = sync.Pool{New: func() any { return new(invocation) }}

// address returns the address of a value for C. Invocations do not move. The user keeps an
// invocation alive until the return to the pool.
func address[T any](value *T) uintptr { return uintptr(unsafe.Pointer(value)) }

// call calls a function whose last parameter is the address of an error object.
func (l *Library) call(function uintptr, arguments ...uintptr) (uintptr, error) {
	i := invocations.Get().(*invocation)
	defer invocations.Put(i)
	return i.call(l, function, arguments...)
}

func (i *invocation) call(l *Library, function uintptr, arguments ...uintptr) (uintptr, error) {
	i.failed = 0
	n := copy(i.arguments[:], arguments)
	i.arguments[n] = address(&i.failed)
	result := foreign.Invoke(function, i.arguments[:n+1])
	if i.failed != 0 {
		return 0, l.failure(i.failed)
	}
	return result, nil
}

// Functions returns the names of the C functions that a library must have.
func Functions() []string {
	var names []string
	table := reflect.TypeFor[symbols]()
	for i := range table.NumField() {
		names = append(names, table.Field(i).Tag.Get("c"))
	}
	return names
}
