// Package report writes the result of a simulation: as JSON or YAML for
// programs (a contract: fields are added, none is changed), as a table for
// people.
package report
