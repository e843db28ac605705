package tangled

// Timer refers to observer.go by a method alone.
type Timer func(interface{ Notify() })

var longest Timer = func(o interface{ Notify() }) { o.Notify() }
