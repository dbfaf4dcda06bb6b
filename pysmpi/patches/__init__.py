"""Patches of libraries and standard modules: one file for each, with the name of its top-level
package.
"""
