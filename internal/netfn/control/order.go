package control

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Configured is the value of Order.Copies for the copies of the edge's configuration. The edge parses all other values.
const Configured = "configured"

// Values of Order.Trigger.
const (
	Start = "start"
	Stop  = "stop"
)

// Order is an instruction for one rule of an edge, or for all rules. An order has either Copies or Trigger.
type Order struct {
	// ID distinguishes an order from an equal later one. The controller sets it.
	ID string `json:"id,omitempty"`
	// Rule is the name of a rule of the edge; "" is every rule.
	Rule string `json:"rule,omitempty"`
	// Copies replaces the copies of the rule: "auto", "off", "all", names of paths separated by commas, or Configured.
	Copies string `json:"copies,omitempty"`
	// Trigger starts or stops copies of a rule with the copies "auto": Start or Stop.
	Trigger string `json:"trigger,omitempty"`
	// For limits the order: afterwards the copies are those of the configuration, or the trigger stops. 0 is no limit.
	// A program that ends before it can stop its trigger does no harm if it uses a limit.
	For Duration `json:"for,omitempty"`
}

// Limits of an order.
const (
	// maxNameBytes is the maximum length of the name of an edge or a rule.
	maxNameBytes = 64
	// maxCopiesBytes fits eight paths with names of the maximum length.
	maxCopiesBytes = 8 * (maxNameBytes + 1)
	// minFor bounds the rate at which limits end; maxFor bounds the time for which a forgotten order stays.
	minFor = 100 * time.Millisecond
	maxFor = 24 * time.Hour
)

// Validate reports the first error of an order, without knowledge of the edge's rules and paths.
func (o Order) Validate() error {
	switch {
	case o.Rule != "" && !validName(o.Rule):
		return fmt.Errorf("%w: rule is %.80q, expected 1 to %d printable characters", ErrOrder, o.Rule, maxNameBytes)
	case o.Copies == "" && o.Trigger == "":
		return fmt.Errorf("%w: expected copies or trigger", ErrOrder)
	case o.Copies != "" && o.Trigger != "":
		return fmt.Errorf("%w: expected either copies or trigger, got both", ErrOrder)
	case len(o.Copies) > maxCopiesBytes:
		return fmt.Errorf("%w: copies has %d bytes, expected at most %d", ErrOrder, len(o.Copies), maxCopiesBytes)
	case o.Trigger != "" && o.Trigger != Start && o.Trigger != Stop:
		return fmt.Errorf("%w: trigger is %.40q, expected start or stop", ErrOrder, o.Trigger)
	case o.For != 0 && (o.Trigger == Stop || o.Copies == Configured):
		return fmt.Errorf("%w: for is %v, but an order to stop has no limit", ErrOrder, o.For.value())
	case o.For != 0 && (o.For.value() < minFor || o.For.value() > maxFor):
		return fmt.Errorf("%w: for is %v, expected %v to %v", ErrOrder, o.For.value(), minFor, maxFor)
	}
	return nil
}

// Replaces reports whether an order makes an earlier one void: both are about copies or both are triggers, of the same
// rule, or the later one is for all rules.
func (o Order) Replaces(earlier Order) bool {
	return (o.Trigger == "") == (earlier.Trigger == "") && (o.Rule == "" || o.Rule == earlier.Rule)
}

// validName reports whether a text can be the name of an edge or a rule.
func validName(name string) bool {
	return name != "" && len(name) <= maxNameBytes && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '/'
	})
}

// Duration is a time.Duration that is a text such as "10s" in JSON.
type Duration time.Duration

func (d Duration) value() time.Duration { return time.Duration(d) }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("for is %.40s, expected a text such as \"10s\"", data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("for is %.40q, expected a duration such as 10s", text)
	}
	*d = Duration(parsed)
	return nil
}
