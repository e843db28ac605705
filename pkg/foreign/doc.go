// Package foreign opens C libraries at run time and calls their functions, so that a program starts without them and
// needs no C compiler. If Supported is false, programs must not call the functions, which panic. Libraries are never
// closed, because threads of a library may run after the last call.
package foreign
