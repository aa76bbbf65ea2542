// Package bounds limits what the clients of an HTTP endpoint take of it: connections, places
// for answers, and time. No client takes all of anything, and one who does not read what it
// asked for loses it.
package bounds
