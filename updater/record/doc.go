// Package record defines what the updater keeps in the store: the records below its
// keys, and the schema of its configuration.
//
// It reads and writes nothing, decides nothing about updates, and imports
// nothing of bijou; every part of the updater may import it. Field names that
// operators and other programs know are fixed: fields may be added, none of them
// renamed.
package record
