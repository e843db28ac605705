package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inventory:", err)
		os.Exit(1)
	}
}

// noticesName is the name of the file with the licences.
const noticesName = "THIRD_PARTY_NOTICES"

func run(arguments []string) error {
	flags := flag.NewFlagSet("inventory", flag.ContinueOnError)
	version := flags.String("version", "", "version of the release")
	var from sources
	flags.StringVar(&from.pages, "pages", "", "file with the licences of the libraries in the web pages")
	flags.StringVar(&from.lock, "lock", "", "package-lock.json of the web pages")
	flags.StringVar(&from.zig, "zig", ".tools/zig", "folder of Zig, with which the C library is built")
	out := flags.String("out", "", "folder of the two files")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *version == "" || from.pages == "" || from.lock == "" || *out == "" || flags.NArg() == 0 {
		return fmt.Errorf("expected -version, -pages, -lock, -out and programs")
	}
	all, err := collect(flags.Args(), from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*out, noticesName), all.notices(), 0o644); err != nil {
		return err
	}
	bill, err := all.bill(*version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "volsfu-"+*version+".cdx.json"), bill, 0o644)
}
