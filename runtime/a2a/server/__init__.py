"""x must never"""
