package main

import _ "example.org/crooked/pkg/codec"

func main() {}
