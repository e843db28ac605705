package signal

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"
	"unicode/utf8"
)

// conforms returns an error if the JSON text violates the named definition. It supports only the
// keywords that schema.json uses.
func conforms(t *testing.T, definition string, text []byte) error {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	defs := parseSchema(t)["$defs"].(node)
	return (&conformity{defs}).check("$", defs[definition].(node), value)
}

type conformity struct{ defs node }

func (c *conformity) check(where string, schema node, value any) error {
	for keyword, argument := range schema {
		if err := c.keyword(where, keyword, argument, value); err != nil {
			return err
		}
	}
	return nil
}

func (c *conformity) keyword(where, keyword string, argument, value any) error {
	holds := true
	switch keyword {
	case "description":
	case "$ref":
		return c.check(where, c.defs[argument.(string)[len("#/$defs/"):]].(node), value)
	case "type":
		holds = isType(argument.(string), value)
	case "const":
		holds = reflect.DeepEqual(value, argument)
	case "enum":
		holds = false
		for _, one := range argument.([]any) {
			holds = holds || reflect.DeepEqual(value, one)
		}
	case "anyOf", "oneOf":
		matching := 0
		for _, alternative := range argument.([]any) {
			if c.check(where, alternative.(node), value) == nil {
				matching++
			}
		}
		holds = matching == 1 || keyword == "anyOf" && matching > 0
	case "properties", "additionalProperties", "required", "dependentRequired", "items":
		return c.container(where, keyword, argument, value)
	case "minimum", "maximum":
		number, ok := value.(float64)
		holds = !ok || keyword == "minimum" && number >= argument.(float64) ||
			keyword == "maximum" && number <= argument.(float64)
	case "minLength", "maxLength":
		text, ok := value.(string)
		n := float64(utf8.RuneCountInString(text))
		holds = !ok || keyword == "minLength" && n >= argument.(float64) ||
			keyword == "maxLength" && n <= argument.(float64)
	case "maxProperties":
		object, ok := value.(node)
		holds = !ok || float64(len(object)) <= argument.(float64)
	case "minItems", "maxItems":
		list, ok := value.([]any)
		n := float64(len(list))
		holds = !ok || keyword == "minItems" && n >= argument.(float64) ||
			keyword == "maxItems" && n <= argument.(float64)
	default:
		return fmt.Errorf("%s: schema uses the keyword %q, which this test does not know", where, keyword)
	}
	if !holds {
		return fmt.Errorf("%s: %v breaks %s %v", where, value, keyword, argument)
	}
	return nil
}

func (c *conformity) container(where, keyword string, argument, value any) error {
	object, _ := value.(node)
	switch keyword {
	case "properties":
		for name, schema := range argument.(node) {
			if member, ok := object[name]; ok {
				if err := c.check(where+"."+name, schema.(node), member); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		// The schema uses this keyword only for maps, which have no properties.
		for name, member := range object {
			if err := c.check(where+"."+name, argument.(node), member); err != nil {
				return err
			}
		}
	case "required":
		for _, name := range argument.([]any) {
			if _, ok := object[name.(string)]; !ok {
				return fmt.Errorf("%s: %v is missing", where, name)
			}
		}
	case "dependentRequired":
		for name, needed := range argument.(node) {
			if _, ok := object[name]; ok {
				return c.container(where, "required", needed, value)
			}
		}
	case "items":
		list, _ := value.([]any)
		for i, item := range list {
			if err := c.check(fmt.Sprintf("%s[%d]", where, i), argument.(node), item); err != nil {
				return err
			}
		}
	}
	return nil
}

func isType(name string, value any) bool {
	switch name {
	case "object":
		_, ok := value.(node)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "string":
		_, ok := value.(string)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "number":
		_, ok := value.(float64)
		return ok
	case "integer":
		number, ok := value.(float64)
		return ok && number == math.Trunc(number)
	default:
		return false
	}
}
