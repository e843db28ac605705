package clients

import "testing"

// TestFunctions counts a function only if its whole name is in the table.
func TestFunctions(t *testing.T) {
	header := []byte("#define VOLSFU_API extern\n" +
		"VOLSFU_API int32_t volsfu_close(volsfu_session session);\n" +
		"VOLSFU_API const char *volsfu_last_message(void);\n" +
		"VOLSFU_API int32_t volsfu_connect(const volsfu_config *config,\n    volsfu_session *session);\n")
	for library, want := range map[string]int{
		"":             0,
		"volsfu_close": 0,
		"\x00volsfu_closed\x00main.volsfu_connect\x00":      0,
		"\x00volsfu_close\x00volsfu_connect\x00":            2,
		"\x00_volsfu_close\x00\x00_volsfu_last_message\x00": 2,
	} {
		if all, exported := functions(header, []byte(library)); all != 3 || exported != want {
			t.Errorf("%q has %d of %d functions, expected %d of 3", library, exported, all, want)
		}
	}
}
