package duplication

// measurements are the parts of each check, in the order of titles.
var measurements = [len(titles)][]measurement{}
