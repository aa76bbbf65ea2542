// Package report writes the result of a simulation. JSON and YAML are for
// programs and are a contract: fields are added, and none changes. The table is
// for people.
package report
