// Package plugintest asks a plugin about every node of a table and checks, on
// the way, what every plugin owes the engine: kernels whose answer for a row
// does not depend on the range that it is asked in. For tests.
package plugintest
