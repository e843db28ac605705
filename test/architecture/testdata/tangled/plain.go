package tangled

// plain has a parameter with the name of a variable of another file. That is no reference.
func plain(longest string) string { return longest }
