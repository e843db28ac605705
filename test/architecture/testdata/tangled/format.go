package tangled

// format has a parameter with the name of a variable of another file. That is no reference.
func format(longest string) string { return longest }
