package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// EnvironmentPrefix is the prefix of all environment variables.
const EnvironmentPrefix = "VOLSFU_"

// key is one setting: a leaf of the tree of structs.
type key struct {
	// path is the path in the file, flag the name on the command line.
	path   []string
	flag   string
	help   string
	secret bool
	// value is the field itself.
	value reflect.Value
}

// name returns the name of the key for operators, such as "server.listen".
func (k *key) name() string { return strings.Join(k.path, ".") }

// environment returns the name of the key's environment variable.
func (k *key) environment() string {
	return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(k.flag, "-", "_"))
}

// section is one struct of the tree.
type section struct {
	name  string
	help  string
	value reflect.Value
	// keys and sections are in the order of the fields; keys come first.
	keys     []*key
	sections []*section
}

// all returns the keys of the section and of its subsections.
func (s *section) all() []*key {
	keys := append([]*key(nil), s.keys...)
	for _, sub := range s.sections {
		keys = append(keys, sub.all()...)
	}
	return keys
}

// readSection describes a struct. A struct that cannot be a configuration is a programming error, not invalid input.
func readSection(value reflect.Value, path []string, name, help string) *section {
	s := &section{name: name, help: help, value: value}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		tag, help := field.Tag.Get("yaml"), field.Tag.Get("help")
		if tag == "-" {
			// Set by the program.
			continue
		}
		if tag == "" || help == "" || !field.IsExported() {
			panic(fmt.Sprintf("field %s of %s is not a setting: it has to be exported and have the tags yaml and help",
				field.Name, value.Type()))
		}
		at := append(append([]string(nil), path...), tag)
		if field.Type.Kind() == reflect.Struct {
			s.sections = append(s.sections, readSection(value.Field(i), at, tag, help))
			continue
		}
		k := &key{path: at, flag: field.Tag.Get("flag"), help: help, secret: field.Tag.Get("secret") == "true",
			value: value.Field(i)}
		if k.flag == "" {
			k.flag = strings.ReplaceAll(strings.Join(at, "-"), "_", "-")
		}
		if kindOf(k.value.Type()) == "" {
			panic(fmt.Sprintf("field %s of %s is not a setting: its type is %s", field.Name, value.Type(), field.Type))
		}
		s.keys = append(s.keys, k)
	}
	return s
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	listType     = reflect.TypeFor[[]string]()
)

// kindOf returns the type name of a key's value, as shown by flags, or "" for unsupported types.
func kindOf(t reflect.Type) string {
	switch {
	case t == durationType:
		return "duration"
	case t == listType:
		return "list"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "float"
	default:
		return ""
	}
}
