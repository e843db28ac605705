package tangled

// Thread refers to paw.go by a method alone.
type Thread func(interface{ Pull() })

var longest Thread = func(p interface{ Pull() }) { p.Pull() }
