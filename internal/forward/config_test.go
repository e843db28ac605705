package forward

import (
	"errors"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is invalid: %v", err)
	}
	for key, change := range map[string]func(*Config){
		"writers":           func(c *Config) { c.Writers = -1 },
		"cache_age":         func(c *Config) { c.CacheAge = 0 },
		"report_interval":   func(c *Config) { c.ReportInterval = 0 },
		"track_cache_bytes": func(c *Config) { c.TrackCacheBytes = 1 },
		"max_nacked":        func(c *Config) { c.MaxNACKed = -1 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), key) {
			t.Errorf("a wrong %s gives %v", key, err)
		}
	}
}
