"""Push notifications. It must never"""
