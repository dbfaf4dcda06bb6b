"""Patches of libraries and standard modules: one module for each, with the name of its top-level
package.
"""
