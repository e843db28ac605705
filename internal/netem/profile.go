package netem

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrProfile is the sentinel of a text that cannot be parsed as a profile. The wrapping error has the key and the
// expected value.
var ErrProfile = errors.New("invalid link profile")

// profileKeys are the keys of ParseProfile, in the order of the list in an error.
var profileKeys = []struct {
	key      string
	expected string
	set      func(c *Config, value string) bool
}{
	{"delay", "a time such as 10ms", func(c *Config, v string) bool { return parseDuration(&c.Delay, v) }},
	{"jitter", "a time such as 2ms", func(c *Config, v string) bool { return parseDuration(&c.Jitter, v) }},
	{"jitter_distribution", "normal or uniform", func(c *Config, v string) bool {
		c.JitterDistribution = v
		return v == JitterNormal || v == JitterUniform
	}},
	{"jitter_reorders", "true or false", func(c *Config,
		v string) bool {
		c.JitterReorders = v == "true"
		return v == "true" || v == "false"
	}},
	{"loss", "a share such as 1% or 0.01", func(c *Config, v string) bool { return parseShare(&c.Loss, v) }},
	{"burst", "mean loss and mean length L of a burst in packets such as 1%/5, L 1 or more, loss at most L/(L+1)",
		parseBurst},
	{"rate", "a rate with its unit, bit, kbit, Mbit or Gbit, such as 50Mbit",
		func(c *Config, v string) bool { return parseQuantity(&c.RateBPS, v, rateUnits) }},
	{"queue", "fifo, codel, fq, fq_codel, dualpi2 or paper000, or a size with its unit, B, kB, MB, KiB or MiB, " +
		"or a time, or both, such as codel, 64kB or fq:50ms", parseQueue},
	{"reorder", "a share such as 1% or 0.01", func(c *Config, v string) bool { return parseShare(&c.Reorder, v) }},
	{"reorder_delay", "a time such as 5ms", func(c *Config,
		v string) bool {
		return parseDuration(&c.ReorderDelay, v)
	}},
	{"ecn", "keep, clear, ect0, mark or drop", func(c *Config, v string) bool {
		c.ECN = v
		return slices.Contains(ecnTreatments, v)
	}},
	{"duplicate", "a share such as 1% or 0.01", func(c *Config, v string) bool { return parseShare(&c.Duplicate, v) }},
}

// unit is the suffix of a quantity and its factor.
type unit struct {
	suffix string
	factor float64
}

// Units are tried in this order, so that a suffix comes after those that end in it.
var (
	rateUnits = []unit{{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"bit", 1}}
	sizeUnits = []unit{{"kB", 1e3}, {"MB", 1e6}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"B", 1}}
)

// ParseProfile parses the parameters of a link from a line such as
// "delay=10ms,jitter=2ms,loss=1%,rate=50Mbit,queue=64kB". Other parameters are those of DefaultConfig; the empty text
// is a perfect link. Keys are those of Config except for three:
//
//	burst=1%/5   mean loss and mean length in packets, as for BurstLoss
//	rate=50Mbit  rate_bps, with its unit: bit, kbit, Mbit or Gbit
//	queue=64kB   queue_bytes, with its unit (B, kB, MB, KiB, MiB), or a time for queue_delay; removes the other limit
//	queue=fq     queue; a limit may follow a colon, as in fq:50ms
//
// Errors wrap ErrProfile, or ErrConfig if the text can be parsed but the parameters are invalid.
func ParseProfile(text string) (Config, error) {
	cfg := DefaultConfig()
	if strings.TrimSpace(text) == "" {
		return cfg, nil
	}
	seen := make(map[string]bool)
	for _, field := range strings.Split(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(field), "=")
		if !found {
			return Config{}, fmt.Errorf("%w: %q has no value, expected KEY=VALUE", ErrProfile, key)
		}
		if seen[key] {
			return Config{}, fmt.Errorf("%w: key %q is given twice", ErrProfile, key)
		}
		seen[key] = true
		if err := cfg.Set(key, value); err != nil {
			return Config{}, err
		}
	}
	if err := cfg.Validate(); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// ProfileKeys returns the keys of ParseProfile and of Config.Set.
func ProfileKeys() []string {
	keys := make([]string, len(profileKeys))
	for i, k := range profileKeys {
		keys[i] = k.key
	}
	return keys
}

// Set sets one parameter by its key and value in the format of ParseProfile, without Validate. Errors wrap ErrProfile.
func (c *Config) Set(key, value string) error {
	var names []string
	for _, k := range profileKeys {
		if k.key != key {
			names = append(names, k.key)
			continue
		}
		if !k.set(c, value) {
			return fmt.Errorf("%w: %s is %q, expected %s", ErrProfile, key, value, k.expected)
		}
		return nil
	}
	return fmt.Errorf("%w: unknown key %q, expected one of %s", ErrProfile, key, strings.Join(names, ", "))
}

func parseDuration(d *time.Duration, value string) bool {
	parsed, err := time.ParseDuration(value)
	*d = parsed
	return err == nil
}

// parseNumber parses digits with at most one decimal point; signs, exponents, infinities and NaN are refused.
func parseNumber(value string) (float64, bool) {
	if strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(value, 64)
	return number, err == nil
}

// parseShare parses a number, or a percentage, of any size: Validate checks the range.
func parseShare(share *float64, value string) bool {
	digits, percent := strings.CutSuffix(value, "%")
	number, ok := parseNumber(digits)
	if percent {
		number /= 100
	}
	*share = number
	return ok
}

// parseQuantity parses a number with one of the units, rounded to a multiple of the smallest, but not to 0, which has
// another meaning.
func parseQuantity(quantity *int, value string, units []unit) bool {
	index := slices.IndexFunc(units, func(u unit) bool { return strings.HasSuffix(value, u.suffix) })
	if index < 0 {
		return false
	}
	number, ok := parseNumber(strings.TrimSuffix(value, units[index].suffix))
	rounded := math.Round(number * units[index].factor)
	if !ok || rounded == 0 && number > 0 || rounded > 1e15 {
		// 1e15 is far above every limit and far below an overflow of int
		return false
	}
	*quantity = int(rounded)
	return true
}

func parseBurst(c *Config, value string) bool {
	share, length, found := strings.Cut(value, "/")
	var loss float64
	if !found || !parseShare(&loss, share) {
		return false
	}
	packets, ok := parseNumber(length)
	if !ok {
		return false
	}
	burst, err := BurstLoss(loss, packets)
	c.Burst = burst
	return err == nil
}

// parseQueue parses a discipline, a limit, or both separated by a colon.
func parseQueue(c *Config, value string) bool {
	discipline, limit, both := strings.Cut(value, ":")
	if slices.Contains(disciplines, discipline) {
		c.Queue = discipline
		if !both {
			return true
		}
		value = limit
	}
	c.QueueBytes, c.QueueDelay = 0, 0
	return parseQuantity(&c.QueueBytes, value, sizeUnits) || parseDuration(&c.QueueDelay, value)
}
