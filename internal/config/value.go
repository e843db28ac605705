package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// expected describes a value of each kind.
var expected = map[string]string{
	"string":   "text",
	"bool":     "true or false",
	"int":      "a whole number",
	"float":    "a number",
	"duration": "a duration with its unit, such as 150ms, 15s or 2m",
	"list":     "a list of texts",
}

// parse parses the text of a flag or of an environment variable. Lists are separated by commas.
func parse(text string, t reflect.Type) (reflect.Value, error) {
	value := reflect.New(t).Elem()
	kind := kindOf(t)
	var err error
	if !utf8.ValidString(text) {
		return reflect.Value{}, fmt.Errorf("%w %q, expected UTF-8", ErrValue, text)
	}
	switch kind {
	case "string":
		value.SetString(text)
	case "list":
		value.Set(reflect.ValueOf(splitList(text)))
	case "bool":
		var b bool
		b, err = strconv.ParseBool(text)
		value.SetBool(b)
	case "int":
		var n int64
		n, err = strconv.ParseInt(text, 10, t.Bits())
		value.SetInt(n)
	case "float":
		var f float64
		f, err = parseFloat(text)
		value.SetFloat(f)
	case "duration":
		var d time.Duration
		d, err = time.ParseDuration(text)
		value.SetInt(int64(d))
	}
	if err != nil {
		return reflect.Value{}, fmt.Errorf("%w %q, expected %s", ErrValue, text, expected[kind])
	}
	return value, nil
}

// parseFloat accepts finite numbers only: no setting has a use for others.
func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = strconv.ErrRange
	}
	return f, err
}

// splitList splits at commas and removes empty items.
func splitList(text string) []string {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// format returns a value in the format of parse.
func format(value reflect.Value) string {
	switch kindOf(value.Type()) {
	case "list":
		return strings.Join(value.Interface().([]string), ",")
	case "duration":
		return formatDuration(time.Duration(value.Int()))
	case "float":
		return formatFloat(value.Float())
	case "int":
		// A rate has a String method with a unit, which parse does not accept.
		return strconv.FormatInt(value.Int(), 10)
	default:
		return fmt.Sprint(value.Interface())
	}
}

// formatFloat uses an exponent only for very small and very large numbers.
func formatFloat(f float64) string {
	verb := byte('f')
	if size := math.Abs(f); f != 0 && (size < 1e-6 || size >= 1e15) {
		verb = 'g'
	}
	return strconv.FormatFloat(f, verb, -1, 64)
}

// formatDuration removes the trailing zeros of time.Duration's format.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
