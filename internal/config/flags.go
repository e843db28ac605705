package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// flagValue is the value of one key on the command line. flagValue implements pflag.Value.
type flagValue struct {
	key *key
	// texts are the arguments of the flag, in order; empty if the flag was not used.
	texts []string
}

// String implements pflag.Value. If the flag was not used, it returns the default.
func (v *flagValue) String() string {
	if len(v.texts) > 0 {
		return strings.Join(v.texts, ",")
	}
	if v.key == nil || v.key.secret {
		return ""
	}
	return format(v.key.value)
}

// Set implements pflag.Value. Lists may be given by several flags, by commas, or both; for other types the last flag
// counts.
func (v *flagValue) Set(text string) error {
	if _, err := parse(text, v.key.value.Type()); err != nil {
		return err
	}
	if v.Type() == "list" {
		v.texts = append(v.texts, text)
	} else {
		v.texts = []string{text}
	}
	return nil
}

// Type implements pflag.Value.
func (v *flagValue) Type() string { return kindOf(v.key.value.Type()) }

// apply sets the key if the flag was used.
func (v *flagValue) apply() error {
	if len(v.texts) == 0 {
		return nil
	}
	value, err := parse(strings.Join(v.texts, ","), v.key.value.Type())
	if err != nil {
		return err
	}
	v.key.value.Set(value)
	return nil
}

// AddFlags adds a flag per key, and --config for the file. Load uses the flags parsed before its call.
func (l *Loader) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.file, fileFlag, "", "YAML file of settings; every key is explained in deploy/volsfu.yaml")
	for _, k := range l.root.all() {
		value := &flagValue{key: k}
		l.flags = append(l.flags, value)
		flag := flags.VarPF(value, k.flag, "", k.help)
		if value.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// RedactArguments returns a command line for logs and profiles, with the values of secret keys replaced.
func RedactArguments(arguments []string) []string {
	settings := DefaultConfig()
	secret := make(map[string]bool)
	for _, k := range NewLoader(&settings).root.all() {
		if k.secret {
			secret["--"+k.flag] = true
		}
	}
	shown := slices.Clone(arguments)
	for i := range shown {
		name, _, joined := strings.Cut(shown[i], "=")
		switch {
		case !secret[name]:
		case joined:
			shown[i] = name + "=" + redacted
		case i+1 < len(shown):
			shown[i+1] = redacted
		}
	}
	return shown
}
